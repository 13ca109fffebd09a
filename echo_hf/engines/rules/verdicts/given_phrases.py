"""Phrases that speak of pictures that are given; every repetition in them is bounded."""

from __future__ import annotations

import re

GAP = r"(?:(?!(?:is|are|was|were|should|has)\b)[\w'-]{1,16}\s){0,3}"
PICTURE = (
    r"(?:photos?|photographs?|pics?|pictures?|images?|selfies?|portraits?|screenshots?"
    r"|snapshots?|foto(?:s|graf[ií]as?)?|im[aá]gen(?:es)?|retratos?|photographies?|bilde?r?"
    r"|imagem|imagens|immagin[ei]|ritratt[oi])"
)
SUBJECT = (
    r"(?:person|people|man|woman|girl|boy|kid|child|baby|couple|dog|cat|pet|character|face"
    r"|subject|object|product|logo|room|house|car|outfit|dress|shirt|guy|animal|mascot|building"
    r"|kitchen|bottle|toy|figure|persona|personaje|perro|gato|personne|personnage|chien|chat"
    r"|mann|frau|hund|katze|figur|pessoa|personagem|cachorro|personaggio|cane|gatto|couch|sofa"
    r"|plant)"
)
DRAWING = (
    r"(?:sketch(?:es)?|drawings?|doodles?|line[\s-]?art|line drawings?|linework|scribbles?"
    r"|wireframes?|outlines?|blueprints?|floor ?plans?|rough|draft|boceto|dibujo|garabato"
    r"|esbozo|croquis|dessin|esquisse|gribouillis|skizze|zeichnung|kritzelei|entwurf|esboço"
    r"|desenho|rascunho|rabisco|schizzo|disegno|bozza|scarabocchio)"
)
THIS = (
    r"(?:this|these|my|our|(?:the |an? )?(?:attached(?! to)|uploaded|provided|enclosed)"
    r"|the (?:given|original|input|reference)|esta|este|estas|estos|mi|mis|cette|ce|ces|ma|mon"
    r"|mes|dieses?|diesem|diese[nr]?|meine?[nmrs]?|essa|esse|minha|meu|questa|questo|queste|mia"
    r"|mio)"
)
HAN_GIVEN = (
    r"这[张幅]|這[張幅]|该(?:照片|图|人物)|照片(?:里|中|上|裡)(?:的|面)|图(?:片|像)?(?:里|中"
    r"|上)的|圖(?:片|像)?(?:裡|中|上)的|上传|上傳|附件|附图|附圖|参考图|參考圖|原图|原圖"
    r"|我的(?:照片|自拍|头像|猫|狗)|[把将將]我|この(?:写真|画像|絵|人物|キャラ|線画|イラスト|猫"
    r"|犬|子|部屋|ロゴ)|添付|元の(?:画像|写真)|元画像|アップロード|写真の(?:人|中)|(?:私|自分"
    r"|僕|俺)(?:の(?:写真|顔|猫|犬|自撮り))?を|参考画像"
)
GIVEN = re.compile(
    rf"\b{THIS}\s{GAP}(?:{PICTURE}|{SUBJECT}|{DRAWING})\b"
    r"(?!\s(?:shows?|depicts?|features?|captures?|should|portrays?|presents?|is\s|of\s\[))"
    rf"|\b(?:the|every|all|la|el|las|los|le|les|der|die|das|den|o|a|os|as|il|lo|gli"
    rf"|i)\s{GAP}{SUBJECT}s?\s(?:{GAP}(?:in|from|on|of|de|en|sur|auf|im|na|da|della?|nella"
    rf"|sulla)\s(?:the|this|my|la|dem|der)?\s?(?:attached|uploaded|reference"
    rf"|provided)?\s?{PICTURE}|(?:in|from) the (?:scene|attachment))\b|\b(?:reference|attached"
    rf"|uploaded|original|input|source)\s{PICTURE}|\bthe attachment\b|\b{PICTURE}\s(?:attached"
    rf"|provided|uploaded|i (?:uploaded|attached|sent|gave)|adjunta|de referencia"
    r"|ci-jointe|jointe|angehängt|hochgeladen|anexada|em anexo|allegata|caricata)\b"
    rf"|\bupload {PICTURE}|\b(?:turn|make|draw|transform|convert|reimagine) (?:me|us|myself|him"
    rf"|her|them)\b"
    r"|\bmyself\b|\bconvi[eé]rteme|\bponme\b|\btransforme-moi|\bverwandle mich"
    rf"|\b(?:turn|transform|convert|redraw|restyle|retexture|edit)\sthe\s{PICTURE}\b"
    rf"|\b(?:based on|using|from) (?:the|my|this|an?) (?:attached |uploaded )?{PICTURE}\b"
    rf"|{HAN_GIVEN}"
)
ONE_GIVEN = re.compile(
    rf"\b(?:this|that|my|the|attached|esta|mi|la|cette|ma|dieses|mein|diesem|essa|minha|questa"
    rf"|mia)\s{GAP}(?:photo|pic|picture|image|selfie|portrait|foto|imagen|photographie|bild"
    rf"|imagem|immagine|sketch|drawing|person|dog|cat|{DRAWING})\b|这张|這張|この(?:写真|画像"
    rf"|線画|絵)"
)
COMBINE = (
    r"\b(?:combin\w{1,4}|merg\w{1,3}|blend\w{0,3}|fus(?:e|ion\w{0,3})|composit\w{1,3}|collage"
    r"|together|fusiona\w{0,2}|junta\w{0,2}|mezcla\w{0,2}|fusionne\w{0,2}|assemble"
    r"|kombinier\w{1,3}|verbinde|zusammen\w{0,6}|junte|mescle|unisci|fondi|insieme)\b"
)
COUNTED = (
    rf"\b(?:both|these (?:two|three|four|2|3|4)|ambas?|ambos|estas dos|ces deux|les deux"
    rf"|beide[nr]?|diese (?:zwei|beiden)|estas duas|essas duas|entrambe"
    rf"|queste due)\s?{GAP}{PICTURE}\b|\b(?:two|three|2|3)\s(?:attached |uploaded "
    rf"|given )?{PICTURE}\b|\b(?:first|second|third|other|1st|2nd|left|right|segunda|primera"
    rf"|deuxième|première|zweite[ns]?|erste[ns]?|primeira|seconda|prima)\s(?:{PICTURE}|one\b)"
    rf"|\b{PICTURE}\s?#?(?:[1-4ab]|one|two)\b"
    r"|[两兩二2]张(?:图|照片)|[两兩]張|图[12一二]|圖[12一二]|第[一二三]张|第[一二三]張|[2二]枚"
    r"|[12一二]枚目"
)
SEVERAL = re.compile(f"{COMBINE}|{COUNTED}|合成|融合|结合|結合|組み合わせ|拼在一起")
SEVERAL_GIVEN = re.compile(
    rf"{COMBINE}[^.!?\n]{{0,60}}(?:{COUNTED})|(?:{COUNTED})[^.!?\n]{{0,80}}{COMBINE}"
    r"|(?:two|both|these|three|两|兩|2枚)[^.!?\n]{0,30}into (?:one|a single)|(?:两"
    r"|兩)张[^。\n]{0,20}(?:合|融)"
    rf"|\bfrom the (?:first|1st) {PICTURE}[^.!?\n]{{0,80}}(?:second|2nd|other)"
)
STYLE_OF_GIVEN = re.compile(
    rf"\bstyle (?:of|from|in) the (?:second|other|reference|2nd|last|attached) {PICTURE}|(?:use"
    rf"|apply) the style of (?:the )?(?:second|other|reference|2nd|{PICTURE})"
    r"|第二张(?:图)?的风格|2枚目の(?:スタイル|画風)"
)
