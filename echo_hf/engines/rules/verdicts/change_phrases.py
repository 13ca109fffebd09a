"""Phrases that say what should become of a given picture; all repetitions are bounded."""

from __future__ import annotations

import re

from echo_hf.engines.rules.verdicts.given_phrases import DRAWING, GAP

RESTORE = re.compile(
    r"\b(?:restor(?:e|ation|ing)|repair|unblur|deblur|denoise|upscal(?:e|ing)|coloris?e"
    r"|colorize|sharpen|remaster|enhance (?:the |this |my )?(?:quality|resolution|photo|image"
    r"|picture|old)|(?:remov\w{1,3}|fix|clean|erase|repair)\s[^.\n]{0,40}(?:scratch|crease"
    r"|stain|tear|dust|noise)\w{0,2}|improve the (?:quality|resolution)|fix (?:this|the"
    r"|my) (?:old|damaged|blurry|torn|faded)|old (?:damaged |family |torn |faded "
    r"|black and white )?photo(?:graph)?|restaur\w{1,3}|repara\w{0,2}|colorea esta foto"
    r"|coloriza\w{0,2}|quita los arañazos|foto antigua|mejora la calidad|répare\w{0,2}"
    r"|colorise\w{0,2}|enlève les rayures|vieille photo|améliore la qualité|repariere|koloriere"
    r"|kratzer entfernen|entferne die kratzer|altes foto|restaurier\w{1,3}|qualität verbessern"
    r"|tire os riscos|remova os riscos|foto antiga|melhor[ea] a qualidade|ripara|togli i graffi"
    r"|vecchia foto|migliora la qualità)\b|修复|修復|修补|老照片|舊照片|旧照片|(?:去除|去掉"
    r"|消除|清除)[^。\n]{0,8}(?:划痕|刮痕|折痕|污渍|噪点)|去噪|变清晰|變清晰|高清化|古い写真"
    r"|復元|高画質|カラー化|鮮明に"
)
SKETCH = re.compile(
    rf"\b(?:this|these|my|our|his|her|(?:the|an?) (?:attached|uploaded|provided|given|rough"
    rf"|enclosed)|attached|uploaded|esta|este|mi|ce|cette|mon|ma|diese[rsn]?|meine[rsn]?|este"
    rf"|esse|essa|meu|minha|questo|questa|mio|mia)\s{GAP}{DRAWING}\b|\b(?:sketch|doodle"
    rf"|scribble|line[\s-]?art|line drawing|wireframe|drawing)\s(?:to|into|2)\s(?:a "
    rf"|an )?{GAP}(?:image|photo|real|render|picture|painting|finished)|\b(?:turn|convert"
    rf"|transform|finish|colou?r|bring|render|complete)\s(?:in\s)?(?:the|a|my"
    rf"|this)\s{GAP}{DRAWING}\b"
    r"|\bkid'?s? drawing|\b(?:son|daughter|child|kid)['’]s drawing|(?:这|這|我的?|将|將"
    r"|把)[张張幅个個]?[^。\n]{0,6}(?:线稿|線稿|草图|草圖|草稿|涂鸦|塗鴉|手绘|手繪|简笔画"
    r"|簡筆畫|线框)|线稿上色|線稿上色|(?:この|私の|自分の|僕の|手書きの)(?:線画|らくがき|落書き"
    r"|ラフ|下書き|スケッチ|手描き)|線画を|線画に|ラフを|下書きを|落書きを"
)
MEDIA = (
    r"ghibli|pixar|disney|dreamworks|simpsons?|south park|muppets?|minecraft|lego|legos|funko"
    r"|chibi|anime|manga|comics?|comic book|cartoons?|caricatures?|illustrations?|paintings?"
    r"|watercolou?rs?|oil paint\w{0,4}|gouache|acrylic|pastels?|charcoal|pencil|sketch(?:es)?"
    r"|line art|ink drawing|pixel art|8-?bit|16-?bit|voxels?|low[\s-]?poly|3d (?:render\w{0,3}"
    r"|character|icon|model|cartoon|style)|clay|claymation|plasticine|plush\w{0,3}|knitted"
    r"|crochet\w{0,2}|felt|embroider\w{1,3}|cross[\s-]?stitch|stained glass|mosaic|origami"
    r"|paper ?cut|cut paper|papercraft|linocut|woodcut|engraving|etching|ukiyo-?e|statues?"
    r"|sculptures?|marble|figurines?|action figures?|bobbleheads?|nesting dolls?|matryoshka"
    r"|stickers?|emoji|keychains?|enamel pin|badge|pop art|art nouveau|art deco|cubis\w{1,2}"
    r"|impressionis\w{1,2}|van gogh|picasso|monet|vector|flat|coloring page|colouring page"
    r"|silhouette|retro futur\w{1,4}|steampunk|cyberpunk|vaporwave|tapestry|polaroid|doodle"
    r"|doll|dolls|toy|barbie|avatar|stylized|stylised|postage stamp|snow globe|silk|inflatable"
    r"|acuarela|óleo|caricatura|dibujo animado|pintura|estilo|plastilina|aquarelle|dessin animé"
    r"|bande dessinée|peinture|aquarell|ölgemälde|zeichentrick|karikatur|knete|comicstil"
    r"|gemälde|aquarela|desenho animado|massinha|acquerello|dipinto|fumetto|cartone animato"
    r"|style|aesthetic|stil|stile"
)
MEDIUM = re.compile(
    rf"\b(?:{MEDIA})\b|風|风格|風格|水彩|油画|油畫|动漫|動漫|漫画|漫畫|卡通|吉卜力|皮克斯|乐高"
    rf"|樂高|手办|手辦|粘土|贴纸|貼紙|q版|像素"
    "|插画|插畫|素描|剪纸|刺绣|毛绒|アニメ|ジブリ|ピクサー|イラスト|フィギュア|ドット絵|粘土"
    "|ぬいぐるみ|スタンプ|タッチ|画風"
)
RESTYLE = re.compile(
    r"\b(?:restyle|retexture|cartoonify|cartoonize|ghiblify|ghibliphy|animefy|stylize|stylise"
    r"|style transfer|pixelate|legofy|redraw this|repaint this)\b|\b(?:in|into|to|as)\s(?:(?:a"
    r"|an|the)\s)?(?:[\w'-]{1,16}\s){0,4}style\b|\bin the style of\b|\bal estilo\b"
    r"|\ben estilo\b|\bdans le style\b|\bim stil\b|\bno estilo\b|\bnello stile\b|\bin stile\b"
    r"|风格|風格|風に|スタイルに"
)
# An order about a part of the picture, at its beginning.
PART = re.compile(
    r"\W{0,8}(?:(?:please|pls|now|can you|could you|just)\s){0,3}(?:add|remove|replace|swap"
    r"|erase|delete|put|place|give|change (?:the|her|his|my|its|this)\s(?!style)|make (?:the"
    r"|her|his|my|its)\s(?!photo|image|picture)|fill|extend|expand|zoom|crop|rotate|agrega"
    r"|añade|quita|cambia|pon|reemplaza|ajoute|enlève|remplace|change|mets|füge|entferne"
    r"|ersetze|ändere|setze|adicione|remova|troque|mude|coloque|aggiungi|rimuovi|sostituisci"
    r"|cambia|metti)\b|\W{0,8}(?:请|請)?(?:添加|加上|去掉|去除|删除|移除|替换|換成|换成|更换)"
)
EDIT = re.compile(
    r"\bkeep (?:the|her|his|my|its|their|everything|all)\s[^.!?\n]{1,60}?\b(?:same|exactly"
    r"|unchanged|identical|as (?:is|it is|they are)|intact|consistent)\b|\bdo(?:n['’]t"
    r"| not) change (?:anything|the|her|his|my)\b|\b(?:remove|erase|replace"
    r"|change) the (?:background|person|people|text|watermark|sky|object|colou?r)|\b(?:mantén"
    r"|conserva|garde|gardez|behalte|mantenha|mantieni) (?:la|el|le|das|die|den|o|a|il)\b"
    r"|保持[^。\n]{0,10}不变|不要改变|换背景|換背景|変えないで|背景を変"
)
