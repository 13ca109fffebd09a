"""Words and phrases that plain rules look for, and what plain matching sees in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar


def words(**by_language: str) -> frozenset[str]:
    """One set of the words of several languages."""
    return frozenset(word for several in by_language.values() for word in several.split())


# A picture, or a kind of picture.
PICTURE = words(
    en="""image images img imgs picture pictures pic pics photo photos photograph photographs selfie
    selfies portrait portraits poster posters logo logos sticker stickers cartoon cartoons anime
    manga comic comics illustration illustrations illustrated drawing drawings sketch sketches
    painting paintings watercolor watercolour render renders rendering figurine figurines avatar
    avatars wallpaper wallpapers thumbnail thumbnails meme memes infographic infographics collage
    mockup ghibli pixar lego chibi funko polaroid claymation isometric photorealistic artwork
    hyperrealistic cinematic headshot headshots silhouette voxel minifigure diorama bobblehead
    doodle caricature caricatures coloring colouring png storyboard photoshoot""",
    es="""imagen imágenes imagenes foto fotos fotografía retrato retratos cartel pegatina pegatinas
    dibujo dibujos ilustración ilustraciones pintura acuarela caricatura""",
    fr="""photographie photographies affiche affiches autocollant autocollants dessin dessins
    aquarelle peinture""",
    de="""bild bilder bildes bildern plakat aufkleber zeichnung zeichnungen gemälde aquarell
    karikatur porträt illustrationen""",
    pt="""imagem imagens desenho desenhos ilustração figurinha figurinhas adesivo adesivos cartaz
    fotografia aquarela""",
    it="immagine immagini disegno disegni ritratto ritratti illustrazione acquerello vignetta",
)
# What a picture looks like, or shows.
LOOK = words(
    en="""style styles styled stylized background foreground scene lighting light realistic texture
    pixel aspect ratio art canvas cover banner icon icons badge keychain figure toy miniature emoji
    vintage retro composition pastel neon bokeh lens closeup shadows palette typography font
    monochrome minimalist surreal steampunk cyberpunk futuristic landscape sculpture mural 3d
    transparent glossy matte felt knitted crochet origami card packaging hair sky sunset octane hdr
    4k 8k 35mm vector flat shot view angle glowing color colors colour colours""",
    es="estilo fondo realista escena luz textura personaje marioneta atardecer",
    fr="fond décor lumière arrière scène réaliste coucher personnage",
    de="stil hintergrund szene licht realistisch textur sonnenuntergang farben",
    pt="fundo cena pôr",
    it="stile sfondo scena luce realistico tramonto personaggio",
)
# To make or change something, in the forms that people use of themselves and of a model.
MAKING = words(
    en="""make makes making made create creates creating created generate generates generating
    generated draw draws drawing drew drawn design designed turn turns turning turned transform
    transforms transformed convert converts converted render rendered edit edits editing edited
    redraw redrew recreate recreated restyle restyled reimagine reimagined paint painted
    cartoonify illustrate illustrated colorize colorized colourise restore restored photoshop
    produce produced""",
    es="""crea crear creé creado creada creando genera generar generé generado generada generando
    haz hacer hice hecho hecha dibuja dibujar dibujó dibujado convierte convertir convirtió
    convertí convertido transforma transformar transformó transformado diseña diseñar editar
    editado""",
    fr="""crée créer créé créée génère générer généré générée fait faire dessine dessiner dessiné
    transforme transformer transformé convertis modifier modifié imaginé""",
    de="""erstelle erstellen erstellt erzeugen erzeugt generieren generiert generierte mach machen
    gemacht zeichne zeichnen gezeichnet verwandeln verwandelt gestaltet bearbeiten bearbeitet""",
    pt="""crie criar criei criado criada gere gerar gerei gerado gerada faça fazer fiz feito feita
    desenhe desenhar desenhou transformei transformou editei""",
    it="""creare creato creata generare generato generata fatto fatta disegnare disegnato
    trasformare trasformato modificato""",
)
# First word of an instruction that, beside a word about pictures, can hardly mean anything else.
ORDER = words(
    en="""create generate draw redraw render transform convert turn design paint illustrate sketch
    make restyle reimagine recreate retexture colorize colourise cartoonify animate depict
    visualize visualise photograph edit""",
    es="""crea crear créame creame genera generar dibuja dibujar dibújame convierte convierta
    transforma diseña pinta haz hazme ilustra recrea""",
    fr="""crée créez créer génère générez générer dessine dessinez transforme transformez convertis
    convertissez illustre imagine imaginez""",
    de="""erstelle erstell erzeuge generiere zeichne verwandle wandle male gestalte entwirf mach
    mache""",
    pt="crie gere gera desenhe desenha converta transforme pinte faça faz ilustre recrie",
    it="crea genera disegna disegnami trasforma converti dipingi progetta illustra fai",
)
# First word of an instruction, but common elsewhere.
WEAK_ORDER = words(
    en="""add remove replace change put place show give use take swap combine merge blend integrate
    apply keep restore upscale enlarge imagine produce craft build colour color crop fix set
    write""",
    es="agrega añade quita cambia pon reemplaza muestra usa elimina",
    fr="ajoute remplace change mets enlève montre utilise supprime",
    de="füge ersetze entferne ändere zeig zeige stelle setze nimm",
    pt="adicione remova mude coloque mostre troque tire",
    it="aggiungi rimuovi cambia metti immagina mostra sostituisci",
)
# May stand before an order.
OPENERS = words(
    en="please pls plz now then next okay ok hey also just can could would you chatgpt gpt",
    es="ahora luego por favor puedes podrías",
    fr="maintenant peux tu pouvez vous",
    de="bitte jetzt kannst du",
    pt="agora você pode poderia",
    it="adesso puoi per favore",
)
# Models in general. "AI", "IA", "KI" are looked for apart: in small letters they are other words.
ARTIFICIAL = words(
    en="""aiart genai gpt gpts llm llms chatbot chatbots neural diffusion artificial aigenerated
    generativeai imagegen""",
    es="inteligencia",
    fr="artificielle",
    de="künstliche künstlicher",
)
# Means a model only beside the name of one's maker.
MODEL = words(en="model models", es="modelo modelos", fr="modèle modèles", de="modell modelle")
ABBREVIATIONS = words(en="ai", es="ia", de="ki")
# One word, mostly a hashtag, that says pictures are generated.
GENERATION = words(
    en="""imagegen txt2img img2img text2image texttoimage aiart aiartwork aigeneratedart
    aiartcommunity aiimage aiimages aigenerated promptshare gptimage 4oimage 4oimagegen
    imagegeneration ghiblified ghiblify ghiblistyle""",
    de="bildgenerator bildgenerators bildgenerierung bilderzeugung kibild kibilder kikunst",
)
# Without one of these there is no phrase that says it either.
GENERATION_HEADS = words(
    en="image images photo photos picture pictures art text gpt ai",
    es="imagen imágenes imagenes ia",
    de="bild bilder ki",
    pt="imagem imagens",
    it="immagine immagini",
)
PROMPT = words(en="prompt prompts promt promts prompting")
# Other words for a prompt; only before a colon at the start of a line.
PROMPT_BY_COLON = words(
    en="instruction variation tweak",
    es="instrucción instrucciones indicación variante",
    fr="consigne",
    de="anweisung eingabe",
    pt="comando instrução",
    it="istruzione",
)
# Uses of a language model that have nothing to do with pictures.
TEXT_USE = words(
    en="""essay essays code coding coder python javascript sql homework email emails summarize
    summarise summary summaries translate translation therapist therapy resume cv lawyer legal
    spreadsheet excel regex debug refactor thesis paper papers exam exams math algebra poem poems
    recipe recipes benchmark benchmarks context tokens token reasoning voice latency pricing api
    stock stocks article blog newsletter marketing seo""",
    es="""ensayo código tarea deberes correo resumen traducir traducción tesis examen poema
    receta""",
    fr="dissertation devoirs courriel résumé traduire traduction thèse poème recette",
    de="""aufsatz hausaufgaben zusammenfassung zusammenfassen übersetzen übersetzung gedicht
    rezept""",
    pt="redação dever resumo traduzir tradução poesia receita",
    it="tema codice compiti riassunto tradurre tesi ricetta",
)
# To look at a picture that exists.
LOOKING = words(
    en="""analyze analyse analyzes analyzed analysed read reads reading recognize recognise
    recognizes identify identifies identified describe describes described understand understands
    ocr detect recognition vision geoguess locate""",
    es="analiza analizar leer lee reconoce",
    fr="analyser lire reconnaît",
    de="analysieren erkennt erkennen lesen",
    pt="analisar ler reconhece",
    it="analizzare leggere riconosce",
)


# Of the languages that are covered.
FAMILIAR = words(
    en="""the and of to is are was were in on for with that this it you not what how why who when
    they we he she his her my your our from by at as be have has had will would can do does did
    just so but or if all about like more no than then there their them been out up get got one
    new now too almost against after before""",
    es="""el la los las del que y en un una por con para es no se su lo como más pero sus le ya este
    esta sí porque cuando muy sin sobre también me hasta hay donde quien desde todo nos esto les
    hoy""",
    fr="""le les des et est une pour dans qui pas sur avec ce il elle nous vous ne plus au par je
    tout mais fait être cette son sa ses aux ont très bien comme sont du""",
    de="""der die das und ist nicht ein eine zu mit auf für von sich den dem auch es an wie im ich
    sie wir aber noch nur hat haben wird bei oder nach wenn kann mehr aus sind dass über hier""",
    pt="""o os as do da dos das que e não uma um com para por mais como mas foi ao ele ela isso este
    essa são muito já também só pelo pela até eu você meu minha tem ser quando""",
    it="""il lo gli di che non per una sono con come ma più anche questo questa è nel della dei alla
    si""",
)
# Of languages that share words with them and are not covered.
ELSEWHERE = words(
    nl="het een niet voor zijn dat ik je maar ook naar deze wat werd met heb heeft worden wel",
    sv="och att det som på är för inte jag har av ett den till med om ikke jeg er vi kan",
    id="yang dan ini itu untuk dengan tidak ada saya kamu akan bisa dari pada juga sudah apa aku",
    ro="și este nu din pentru cu care mai sau sunt ca fi ale acest lui pe",
    pl="nie się jest jak czy tak ale już przez tylko może bardzo jako dla było są na to że",
    tr="bir ve bu için çok da ile ne gibi daha olarak ama var değil ben sen mi",
    tl="ang ng mga sa na ay ko mo siya hindi ito po lang din yung si nang at kung",
    hu="és hogy nem egy az ez van mint csak már még volt",
    fi="ja hän että mutta kun niin ovat tämä",
    cs="je se na že to jsem jako ale tak pro jak nebo když není bude si",
    vi="và là của có không một",
    ca="amb els les dels aquest però més molt són",
)
# Who speaks of themselves or to somebody is not describing a picture.
FIRST_PERSON = words(
    en="i im ive my mine we our us you your",
    es="yo mi mis nuestro nuestra",
    fr="je j mon ma mes nous notre",
    de="ich mein meine wir unser",
    pt="eu meu minha nós nosso",
    it="io mio mia noi nostro",
)


LETTER = r"[a-z0-9_\u00df-\u024f]"
WORD = re.compile(LETTER + "+")
LINK = re.compile(r"(?:https?://|www\.)\S+|(?<!\S)pic\.twitter\.com/\S+", re.IGNORECASE)
ADDRESSEES = re.compile(r"\s*(?:rt\s+)?(?:[@＠][\w.-]+[:,]?\s*)+", re.IGNORECASE)


def _one_to_one() -> dict[int, str]:
    # Full-width and mathematical letters are how people write "bold" where there is no markup.
    styled = (*range(0x1D400, 0x1D800), *range(0xFF01, 0xFF5F), *range(0x24B6, 0x24EA))
    plain = {code: unicodedata.normalize("NFKC", chr(code)).lower() for code in styled}
    return {code: letter for code, letter in plain.items() if len(letter) == 1}


STYLED = _one_to_one()


def fold(text: str) -> str:
    """Small letters, and plain ones for styled ones.

    Example:
        >>> fold("𝗣𝗿𝗼𝗺𝗽𝘁: A Cat"), len(fold("İstanbul"))
        ('prompt: a cat', 8)
    """
    if text.isascii():
        return text.lower()
    folded = text.translate(STYLED).lower()
    if len(folded) == len(text):
        return folded
    # A few letters have small forms of two characters.
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def words_of(folded: str) -> list[str]:
    """The words of a folded text in Latin letters, in order."""
    return WORD.findall(folded)


def without_addresses(text: str) -> str:
    """A text without the handles it begins with, and without links.

    Example:
        >>> without_addresses("@mira_draws @tomo look https://example.org/x here").split()
        ['look', 'here']
    """
    if "@" in text or "＠" in text:
        leading = ADDRESSEES.match(text)
        text = text[leading.end() :] if leading else text
    return LINK.sub(" ", text) if "http" in text or "www." in text or "pic." in text else text


ANY_WORD = "_"
# They change how strongly something is said, never what; articles do not even that.
FILLERS = words(
    en="""s re ve m ll really even very quite so just actually totally completely entirely
    absolutely also honestly literally basically kinda sorta rather somehow probably
    definitely clearly particularly especially exact a an the""",
    es="muy realmente incluso siquiera también todavía tan completamente totalmente el los las un",
    fr="très vraiment tout complètement totalement si encore la le les une",
    de="sehr wirklich ganz überhaupt gar noch völlig einfach das die der ein eine",
    pt="muito realmente totalmente completamente ainda os uma",
    it="molto davvero proprio totalmente completamente ancora il lo gli una",
)
SPELLED_OUT = (
    ("can't", "cannot"),
    ("won't", "will not"),
    ("n't", " not"),
    ("not so much", "lacking"),
    ("less so", "lacking"),
)
SPELLED_OUT = (
    ("can't", "cannot"),
    ("won't", "will not"),
    ("n't", " not"),
    ("not so much", "lacking"),
    ("less so", "lacking"),
)
HELPERS = words(en="do does did is are was were could would has")
WITHOUT_APOSTROPHE = {
    **{f"{verb}nt": f"{verb} not" for verb in HELPERS},
    "cant": "cannot",
    "wont": "will not",
    "aint": "is not",
}

FEWEST_LEFT = 2  # of a phrase: what is left of it must not be a common word

T = TypeVar("T")


def plain_words(folded: str) -> list[str]:
    """The words of a folded text, negations written out, without those that say nothing."""
    for written, plain in SPELLED_OUT:
        folded = folded.replace(written, plain)
    found = words_of(folded)

    if not WITHOUT_APOSTROPHE.keys().isdisjoint(found):
        found = " ".join(WITHOUT_APOSTROPHE.get(word, word) for word in found).split()
    return [word for word in found if word not in FILLERS]


def phrases(**by_language: str) -> frozenset[str]:
    """One set of the phrases of several languages, which commas separate, in plain words."""
    each = (phrase for several in by_language.values() for phrase in several.split(","))
    return frozenset(_plain(phrase) for phrase in each if phrase.strip())


def _plain(phrase: str) -> str:
    found = plain_words(phrase)
    if len(found) < min(len(phrase.split()), FEWEST_LEFT):
        raise ValueError(f"of the phrase {phrase!r} only {found} remains: write it without fillers")
    return " ".join(found)


class Found(NamedTuple, Generic[T]):
    """A phrase found: the words from `start` to before `end`, and what it means."""

    start: int
    end: int
    meaning: T


class Lexicon(Generic[T]):
    """Phrases with their meanings."""

    def __init__(self, entries: Iterable[tuple[T, Iterable[str]]]) -> None:
        self._root: _Node[T] = _Node()
        for meaning, several in entries:
            for phrase in several:
                self._root.add(phrase.split(), meaning)

    def find(self, plain: Sequence[str]) -> Iterator[Found[T]]:
        """The phrases in a list of words, from the left, the longest first, none overlapping."""
        at = 0
        while at < len(plain):
            first = self._root.following.get(plain[at])
            found = first.longest(plain, at + 1) if first else None
            if found:
                yield Found(at, *found)
            at = found[0] if found else at + 1


class _Node(Generic[T]):
    """What may follow the words up to here, and what they mean where a phrase ends here."""

    def __init__(self) -> None:
        self.following: dict[str, _Node[T]] = {}
        self.meanings: list[T] = []

    def add(self, plain: Sequence[str], meaning: T) -> None:
        node = self
        for word in plain:
            node = node.following.setdefault(word, _Node())
        node.meanings.append(meaning)

    def longest(self, plain: Sequence[str], at: int) -> tuple[int, T] | None:
        """Where the longest phrase from here on ends, and its meaning; as written before `_`."""
        found = (at, self.meanings[0]) if self.meanings else None
        for word in (plain[at], ANY_WORD) if at < len(plain) else ():
            following = self.following.get(word)
            longer = following.longest(plain, at + 1) if following else None
            if longer and (found is None or longer[0] > found[0]):
                found = longer
        return found


HAN_OR_KANA = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

HAN_PICTURE = re.compile(
    "图片|圖片|图像|圖像|照片|插画|插畫|海报|海報|贴纸|貼紙|头像|頭像|动漫|動漫|漫画|漫畫|卡通|渲染|手办|手辦"
    "|摄影|攝影|表情包|吉卜力|皮克斯|乐高|樂高|壁纸|壁紙|素描|水彩|油画|油畫|自拍|人像|肖像|配图|修图|P图|q版|截图"
    "|插图|插圖|徽章|公仔|画像|写真|イラスト|絵|ポスター|スタンプ|アニメ|マンガ|ジブリ|アイコン|似顔絵|フィギュア"
    "|ロゴ|線画|スケッチ|ミーム|写真集"
)
HAN_LOOK = re.compile(
    "风格|風格|背景|写实|寫實|构图|構圖|画面|畫面|封面|特写|镜头|鏡頭|光线|质感|比例|色调|场景|俯视|3d|透明|排版|配色"
    "|スタイル|風の|風に|リアル|構図|質感|雰囲気|光|シーン"
)
HAN_MAKING = re.compile(
    "生成|绘制|繪製|创作|創作|创建|創建|制作|製作|设计|設計|转换|轉換|转化|轉化|变成|變成|画[一个张出]|畫[一個張出]|做[了的出]"
    "|描[いくか]|作[っり成]|加工|変換|変え|にして|仕上げ|編集|编辑|修改"
)
HAN_GENERATION = re.compile(
    "画像生成|图像生成|圖像生成|图片生成|圖片生成|文生图|文生圖|图生图|圖生圖|生图|生圖|出图|出圖"
    "|画像編集|图像编辑|生成画像|画像を生成|画像が生成|生成ai ?(?:画像|イラスト)"
    "|ai ?(?:绘画|繪畫|绘图|繪圖|画图|畫圖|作画|イラスト|画像|アート|生图)"
    "|生成(?:了|的|一张|一張)?(?:图片|圖片|图像|圖像|照片)"
)
HAN_PROMPT = re.compile("提示词|提示詞|提示语|提示語|咒语|咒語|プロンプト|呪文|描述词")
HAN_MODEL = re.compile("模型|モデル")
HAN_TEXT_USE = re.compile(
    "论文|論文|作文|代码|代碼|编程|写作|寫作|翻译|翻譯|总结|總結|作业|作業|邮件|郵件|简历|履歷|小说|コード|プログラ"
    "|翻訳|要約|メール|宿題|レポート|論文|文章"
)
HAN_LOOKING = re.compile("识别|識別|分析|读取|理解|认识|読み取|解析|認識")
WONDER = re.compile(
    "太[强強牛]|厉害|厲害|离谱|離譜|震撼|绝了|絕了|炸裂|惊艳|驚豔|牛逼|卧槽|すご|凄|やば|ヤバ|びっくり|衝撃"
)
HAN_PRAISE = re.compile(
    WONDER.pattern + "|太棒|很棒|真棒|好看|喜欢|喜歡|效果(?:很|不错|不錯|真|太|超|非常)|不错|不錯"
    "|好玩|好用|完美(?:!|！|了|啊)"
    "|满意|滿意|真好|太好|可爱(?:了|!|！|死)|漂亮|好评|最高|可愛い|かわいい|素敵|綺麗|きれい|面白い|おもしろ|好き|いい感じ|うまく|完璧|神"
)
HAN_COMPLAINT = re.compile(
    "失败|失敗|翻车|翻車|不行|不好|太假|好丑|太丑|垃圾|难看|難看|变形|變形|错误|錯誤|不像|拒绝|拒絕|没用|不对|糊了|残念|ダメ|だめ"
    "|下手|できな|崩れ|ひどい|拒否|違う|怖い|微妙|うまくいか"
)
HAN_TRIED = re.compile(
    "试了|試了|试试|試試|我的|结果|結果|用了|跑了|生成了|做了|我也|やってみ|試し|使ってみ|作ってみ|できた|出来た|結果|真似"
)
# An instruction: its beginning in Chinese, its end in Japanese.
HAN_ORDER = re.compile(
    r"\W{0,8}(?:(?:请|請|帮|幫|为|為|给|給|你|我|能|可以|想){0,4}"
    r"(?:将|將|把|生成|[画畫](?![面像风風质框中家])|绘制|繪製|创作|創作|创建|創建|制作|製作|设计|設計|转换|轉換|根据|根據|基于|基於|使用|拍摄|拍攝"
    r"|展示|重绘|重繪|以.{1,24}(?:风格|風格|视角|方式))"
    r"|[^\n。！!?？]{0,120}?(?:してください|して下さい|描いて|作って|生成して|変換して|変えて|にして|作成して|加工して))"
)


# Greek to Ethiopic and beyond, Hangul, presentation forms of Hebrew and Arabic, other planes.
OTHER_SCRIPT = re.compile(
    r"[\u0370-\u1dff\u1f00-\u1fff\u3131-\u318e\ua000-\ua4cf\uac00-\ud7af\ufb1d-\ufdff\ufe70-\ufefc"
    r"\U00010000-\U0001bfff\U0001e000-\U0001efff]"
)
LATIN_LETTER = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]")
MOST_OTHER_SCRIPT = 0.3
COVERAGE_FEWEST_WORDS = 7
WORDS_FOR_ONE_FAMILIAR = 12
KNOWN = FAMILIAR | PICTURE | LOOK


def covers(folded: str, words: Set[str]) -> bool:
    """Whether the language of a text is one that the word lists know."""
    return _known_script(folded) and _known_language(folded, words)


def _known_script(folded: str) -> bool:
    if folded.isascii():
        return True
    other = len(OTHER_SCRIPT.findall(folded))
    if not other:
        return True
    known = len(LATIN_LETTER.findall(folded)) + 2 * len(HAN_OR_KANA.findall(folded))
    return other <= MOST_OTHER_SCRIPT * (other + known)


def _known_language(folded: str, words: Set[str]) -> bool:
    if len(words) < COVERAGE_FEWEST_WORDS:
        return True
    if not folded.isascii() and len(HAN_OR_KANA.findall(folded)) > len(words):
        return True
    known = len(words & KNOWN)
    return known * WORDS_FOR_ONE_FAMILIAR >= len(words) and known > len(words & ELSEWHERE)


END = rf"(?!{LETTER})"
START = rf"(?<!{LETTER})"


def one_of(words: Set[str]) -> str:
    """An alternation of whole words."""
    return "(?:" + "|".join(sorted(words)) + ")"


def _phrases(*alternatives: str) -> re.Pattern[str]:
    return re.compile(START + "(?:" + "|".join(alternatives) + ")")


PHRASES_GENERATION = _phrases(
    r"(?:image|img|picture|photo)[\s-]?gen(?:s|eration|erations|erator|erators|erated|erating)?"
    + END,
    r"images?\s(?:edit|editing|editor|editors|model|models|creation|creator)" + END,
    r"(?:text|txt|im(?:age|g))[\s-]?(?:to|2)[\s-]?im(?:age|g)",
    r"(?:generat(?:e|es|ed|ing)\s(?:\w{1,12}\s){0,2}|ai[\s-]?|ai[\s-]generated\s|generated\s)"
    r"(?:images?|pictures?|photos?|art|artwork|portraits?|illustrations?|selfies?)" + END,
    r"ai[\s-]generated" + END,
    r"(?:images?|pictures?|photos?)\s(?:was |were )?(?:made|created|generated|edited)"
    r"\s(?:with|by|using|in)",
    r"(?:generaci[oó]n|generador|creaci[oó]n|edici[oó]n)\sde\sim[aá]genes",
    r"im[aá]gen(?:es)?\s(?:generad|cread|hech|con\sia|de\sia)",
    r"(?:generar|crear|generando|generad[ao]s?)\s(?:\w{1,12}\s){0,2}im[aá]gen(?:es)?",
    r"(?:g[eé]n[eé]ration|g[eé]n[eé]rateur|cr[eé]ation|retouche)\sd['’]\s?images?",
    r"images?\s(?:g[eé]n[eé]r[eé]e?s?|par\s(?:l['’])?ia|ia)" + END,
    r"(?:g[eé]n[eé]rer|cr[eé]er)\s(?:\w{1,12}\s){0,2}images?",
    r"bild(?:er)?[\s-]?(?:generierung|generator|erzeugung|generieren|erstellen|erzeugen|bearbeitung)",
    r"ki[\s-]?(?:bild|bilder|kunst|generiert\w{0,3})" + END,
    r"(?:generierte|erzeugte|erstellte)[nrs]?\sbild",
    r"(?:gera[cç][aã]o|gerador|cria[cç][aã]o|edi[cç][aã]o)\sde\simagens",
    r"imag(?:em|ens)\s(?:gerad|criad|feit|com\sia|de\sia)",
    r"(?:gerar|criar|gerou|gerei)\s(?:\w{1,12}\s){0,2}imag(?:em|ens)",
    r"(?:generazione|generatore|creazione)\sdi\simmagini",
    r"immagin[ei]\s(?:generat|creat|con\sia)",
    r"(?:generare|creare)\s(?:\w{1,12}\s){0,2}immagin[ei]",
)
PROMPT_MEANT = re.compile(
    r"prompts?(?:\s[^\s:：.!?]{1,15}){0,6}\s?[:：]"
    r"|prompts?[\s\W]{0,3}[👇⬇↓🧵]"
    rf"|{START}(?:the|my|this|that|new|your|full|same|share|sharing|copy|free|image|following|best"
    r"|these|another|today'?s|fun|favou?rite|el|este|mi|nuevo|los|le|mon|ce|ton|les|nouveau|der|mein"
    r"|dieser|den|dem|diesem|neuer|o|meu|esse|este|novo|il|mio|questo|nuovo|4o|gpt|chatgpt)\s"
    rf"(?:\w{{1,12}}\s)?prompts?{END}(?!\s(?:respon|repl[iy]|action|return|pay|service|attention|deliver))"
    r"|prompts?\s(?:share|sharing|below|in|used|i used|is|was|here|pack|thread|ideas?|template|drop"
    r"|credit|usado|utilizado|abajo|en|aqui|aquí|utilisé|ci|dans|unten|im|hier|abaixo|nos|nei|sotto"
    r"|usato)" + END
)
PROMPT_ASKED = re.compile(
    r"prompts?\s?(?:please|pls|plz|por favor|bitte|svp|stp|per favore|\?)"
    r"|(?:what|which|share|drop|send|whats|what's|got)\W(?:\w{1,8}\W){0,3}prompts?"
    r"|(?:qu[eé]|cu[aá]l|quel|welche[rn]?|qual|che)\s(?:\w{1,8}\s){0,2}prompts?"
    r"|prompts?\s(?:did|do)\syou"
)
COLON = re.compile(r"(?m)^\W{0,8}\w{3,15}\s?[:：]")
ABBREVIATED = re.compile(r"(?<![^\W\d_])(?:Gen)?(?:AI|IA|KI)(?![^\W\d_])|(?<!\w)#(?:ai|ia|ki)\b")
# An order stands at the beginning of a line or sentence, after at most a few polite words.
ORDER_AT = (
    rf"\W{{0,8}}(?:{one_of(OPENERS)}{END}\W{{1,3}}){{0,4}}"
    rf"(?:{one_of(ORDER | WEAK_ORDER)}){END}"
    r"(?!\W{1,2}(?:sure|america|no mistake|money|sense|up your|it to|history|love|fun of"
    r"|(?:on|off|left|right|up|down|out|around)\b))(?=\W{1,3}\w)"
)
ORDER_LINE = re.compile(rf"(?:^|[.!?:：\n…]){ORDER_AT}")
ORDER_START = re.compile(ORDER_AT)
INTO = re.compile(
    rf"{START}(?:turn|turns|turned|turning|transform\w{{0,5}}|convert\w{{0,5}}|convert[ií]\w{{0,3}}"
    r"|convier\w{2,4}|verwandel\w{1,2}|mach\w{0,2}|gemacht|transformé\w{0,2})"
    rf"[^.!?\n]{{1,80}}?{START}(?:into|to|en|em|in|zu|als)\s"
)
BLANK = re.compile(r"\[[^\[\]\n(]{2,60}\](?!\()|【[^【】\n]{1,60}】|\{[^{}\n\":]{2,60}\}")
JSON_START = re.compile(r"[{\[]\s{0,40}\"[^\"\n]{1,80}\"\s{0,5}:\s{0,5}[\"{\[\dtf]")
EMOJI_WONDER = re.compile("[🤯😱🔥😍🤩👀😮😲🥹]")


BEFORE, AFTER = rf"(?<!{LETTER})", rf"(?!{LETTER})"
# A target's name in prose often ends in what it does.
WHAT_IT_DOES = re.compile(r"\W+(?:native )?(?:image|picture|photo)s?(?:\W+\w+){0,3}$")
SHORTEST_CLEAR = 4
COMPARED_BEFORE = re.compile(
    r"(?:\b(?:than|vs|versus|unlike|beats?|beating|over|like|rip|bye|goodbye|outperforms?|kills?"
    r"|killed|replaces?|replaced|destroys?|compared (?:to|with)|not|no|que|als|wie|do que|di|como"
    r"|comme|come)|比|不是|より|像|不像|超越|吊打)"
    r"[\W_]{0,3}(?:(?:the|el|la|le|der|o|il|using|even|ever|with)\s){0,2}$"
)
COMPARED_AFTER = re.compile(
    r"\W{0,3}(?:v?\d[\d.]{0,3}\W{0,2})?"
    r"(?:风格|風格|スタイル|より|風|(?:styles?|styled|looks?|vibes?|level|vs|versus|can['’]?t|cannot"
    rf"|could never|is (?:dead|done|over|cooked|finished)|killers?|stil|estilo){AFTER})"
)
# Romance ordinals and the like, where "4o" is a fourth.
ORDINAL_AFTER = re.compile(
    r"\W{1,2}(?:ano|anos|año|grado|lugar|dia|día|puesto|semestre|trimestre|bimestre|periodo|período"
    r"|capítulo|congreso|encuentro|encontro|turno|piso|andar|piano|posto|anno|classe|class|eso|[ab]"
    r"|de|da|do|del|della|of|july|place|floor|grade|round|batalh\w+|batall\w+|sorteo)(?!\w)"
)
WINDOW = 40


@dataclass(frozen=True, slots=True)
class NameList:
    """Names to look for."""

    pattern: re.Pattern[str] | None
    first_words: frozenset[str]

    def finditer(self, folded: str, in_it: Set[str]) -> Iterator[re.Match[str]]:
        """The places of the names in a folded text with these words."""
        if self.pattern and not (self.first_words and self.first_words.isdisjoint(in_it)):
            return self.pattern.finditer(folded)
        return iter(())


@dataclass(frozen=True, slots=True)
class Names:
    """The names around one target."""

    clear: NameList
    short: NameList
    developer: NameList
    others: NameList

    def names_target(self, folded: str, in_it: Set[str]) -> bool:
        """Whether a text names the target, or the application it is used in."""
        if any(self.clear.finditer(folded, in_it)):
            return True
        short = self.short.finditer(folded, in_it)
        return any(not ORDINAL_AFTER.match(folded, match.end()) for match in short)

    def names_developer(self, folded: str, in_it: Set[str]) -> bool:
        """Whether a text names the target's maker."""
        return any(self.developer.finditer(folded, in_it))

    def uses_other(self, folded: str, in_it: Set[str]) -> bool:
        """Whether a text names another model other than to compare with it."""
        others = self.others.finditer(folded, in_it)
        return any(not _compared(folded, match) for match in others)


def names_of(target: Mapping[str, Any]) -> Names:
    """The names around a target, ready for matching."""
    return _compiled(
        target["name"],
        target["developer"],
        tuple(target["aliases"]),
        tuple(target["others"]),
        target["chat_window"],
    )


@lru_cache(maxsize=16)
def _compiled(
    name: str, developer: str, aliases: tuple[str, ...], others: tuple[str, ...], window: str | None
) -> Names:
    own = [fold(one) for one in (name, *aliases)]
    own += [core for one in own if (core := WHAT_IT_DOES.sub("", one)) != fold(developer)]
    own += [fold(window)] if window else []
    clear = [one for one in own if len(_bare(one)) >= SHORTEST_CLEAR]
    short = [one for one in own if len(_bare(one)) < SHORTEST_CLEAR]
    rest = ([fold(developer)], [fold(one) for one in others])
    return Names(*map(_listed, (clear, short, *rest)))


def _listed(names: Sequence[str]) -> NameList:
    found = {name: _parts(name) for name in names if _bare(name)}
    patterns = [_pattern(name, parts) for name, parts in found.items()]
    first = {word for parts in found.values() for word in _first_words(parts)}
    if not all(found.values()):
        first = set()  # a name in a script without spaces: nothing to look up beforehand
    pattern = re.compile(BEFORE + "(?:" + "|".join(patterns) + ")" + AFTER) if patterns else None
    return NameList(pattern, frozenset(first))


def _pattern(name: str, parts: Sequence[str]) -> str:
    # "DALL-E", "DALL·E", "Dall E", "dalle" and "dalle3" are one name.
    if not parts:
        return re.escape(name)
    joined = r"[\W_]{0,2}".join(re.escape(part) for part in parts)
    ordinary = len(parts) == 1 and parts[0] in PICTURE | LOOK | MAKING
    return joined + (r"[\W_]{0,2}v?\d" if ordinary else r"\d?")


def _first_words(parts: Sequence[str]) -> Iterator[str]:
    for at in range(1, len(parts) + 1):
        joined = "".join(parts[:at])
        yield from (joined, *(joined + digit for digit in "0123456789"))


def _parts(name: str) -> list[str]:
    parts = words_of(name.replace("_", " "))
    # A name that is partly in another script is matched as it is written.
    return parts if sum(map(len, parts)) == len(_bare(name)) else []


def _bare(name: str) -> str:
    return "".join(letter for letter in name if letter.isalnum())


def _compared(folded: str, match: re.Match[str]) -> bool:
    before = folded[max(0, match.start() - WINDOW) : match.start()]
    after = folded[match.end() : match.end() + WINDOW]
    return bool(COMPARED_BEFORE.search(before) or COMPARED_AFTER.match(after))


VERDICT_WONDER = words(
    en="""insane wow woah whoa unreal crazy wild mindblowing mindblown incredible omg amazing
    bonkers unbelievable magic magical stunning wtf""",
    es="increíble brutal alucinante flipante",
    fr="incroyable dingue bluffant ouf",
    de="wahnsinn krass unglaublich irre",
    pt="incrível sensacional",
    it="incredibile pazzesco assurdo",
)
PRAISE = VERDICT_WONDER | words(
    en="""love loved loves loving awesome great cool coolest beautiful beautifully nice nicely
    gorgeous lovely perfect perfectly fantastic adorable cute brilliant excellent impressive
    impressed hilarious genius wonderful best good better works worked nailed nailing fire dope
    sick epic superb flawless flawlessly accurate spectacular outstanding delightful lol haha yay
    bravo favorite favourite obsessed delighted fun funny charming crisp convincing lifelike
    clean correct correctly readable legible sharp""",
    es="""genial precioso preciosa perfecto perfecta encanta hermoso hermosa bonito bonita chulo
    chula maravilloso espectacular funciona funcionó buenísimo bueno buena""",
    fr="""génial superbe magnifique parfait parfaite adore sublime excellente fonctionne marche
    joli jolie beau belle réussi""",
    de="""toll super schön wunderschön perfekt liebe geil klasse funktioniert großartig gelungen
    klappt""",
    pt="""lindo linda perfeito perfeita adorei amei maravilhoso ótimo ótima funcionou bom demais""",
    it="bello bella bellissimo bellissima perfetto perfetta stupendo fantastico funziona ottimo",
)
COMPLAINT = words(
    en="""bad terrible awful ugly wrong fail fails failed failing failure broken weird creepy worse
    worst blurry distorted inaccurate refuse refuses refused refusal horrible garbage slop meh
    disappointing disappointed boring lame mess messed unusable uncanny yellowish overcooked
    misspelled typo typos garbled lost hate hated hates ruined mangled plastic unfortunately
    struggles struggled hallucinated ignored ignores cropped
    drift drifts missing""",
    es="malo mala feo fea falla falló fallo borroso peor rechazó decepcionante",
    fr="mauvais mauvaise moche raté ratée échoue échoué flou pire décevant affreux",
    de="""schlecht hässlich falsch kaputt unscharf schlimm leider misslungen enttäuschend
    abgelehnt""",
    pt="ruim feio feia falhou falha borrado pior recusou errado",
    it="brutto brutta sbagliato fallito sfocato peggio rifiuta deludente orribile",
)
# What the writer of a verdict says beside the verdict itself, and a title does not.
SELF = words(
    en="""this it its is are was were so i im ive my me they these that just really very looks look
    came turned works worked result results wow""",
    es="esto es está son muy mi me quedó resultado que",
    fr="c est ce cette très mon j ai résultat",
    de="das ist sind war sehr mein mich ergebnis",
    pt="isto é está são muito meu ficou",
    it="questo è sono molto mio risultato",
)
TRIED = words(
    en="tried trying attempt attempts mine result results output outputs testing tested used",
    es="probé probado intenté intento salió usé usado resultado resultados mío mía",
    fr="essayé testé utilisé résultat résultats mien mienne essai",
    de="probiert ausprobiert versucht versuch getestet ergebnis ergebnisse benutzt",
    pt="testei tentei usei tentativa",
    it="provato usato risultato risultati",
)


MOST_WORDS_OF_A_REMARK = 6
FEWEST_LOOKS = 4
MANY_LOOKS = 8
WORDS_PER_LOOK = 14

# Every word that is a sign of something: most words of most posts are none.
SIGNS = frozenset[str]().union(
    *(
        {PICTURE, LOOK, MAKING, ORDER, WEAK_ORDER, ARTIFICIAL}
        | {ABBREVIATIONS, GENERATION, GENERATION_HEADS, PROMPT}
        | {PROMPT_BY_COLON, TEXT_USE, LOOKING, MODEL}
        | {PRAISE, COMPLAINT, TRIED}
    )
)


class sign(Generic[T]):  # noqa: N801 - used as a decorator, like property
    """A property computed once; `functools.cached_property` takes a lock for it on Python 3.11."""

    def __init__(self, find: Callable[[Reading], T]) -> None:
        self.find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, reading: Reading, owner: type | None = None) -> T:
        value = reading.__dict__[self.name] = self.find(reading)
        return value


class Reading:
    """The signs in a text; each is looked for when it is first asked about."""

    def __init__(self, text: str, names: Names) -> None:
        self.text = without_addresses(text)
        self.folded = fold(self.text)
        every = words_of(self.folded)
        self.words = frozenset(every)
        self.signs = self.words & SIGNS
        self.has_han = not text.isascii() and HAN_OR_KANA.search(text) is not None
        self._count, self._names = len(every), names

    @sign
    def length(self) -> int:
        """Number of words; two Chinese or Japanese characters count as one."""
        if not self.has_han:
            return self._count
        return self._count + (len(HAN_OR_KANA.findall(self.folded)) + 1) // 2

    @sign
    def is_remark(self) -> bool:
        """It is too short to be about something else."""
        return self.length <= MOST_WORDS_OF_A_REMARK

    @sign
    def covered(self) -> bool:
        """The word lists cover its language."""
        return covers(self.folded, self.words)

    @sign
    def target(self) -> bool:
        """It names the target, or the application it is used in."""
        return self._names.names_target(self.folded, self.words)

    @sign
    def developer(self) -> bool:
        """It names the target's maker."""
        return self._names.names_developer(self.folded, self.words)

    @sign
    def other(self) -> bool:
        """It names another model, not only to compare with it."""
        return self._names.uses_other(self.folded, self.words)

    @sign
    def picture(self) -> bool:
        """It speaks of pictures, or of a kind of picture."""
        return self._any(PICTURE, HAN_PICTURE)

    @sign
    def look(self) -> bool:
        """It says what something looks like."""
        return self._any(LOOK, HAN_LOOK)

    @sign
    def making(self) -> bool:
        """It speaks of making or changing something."""
        return self._any(MAKING, HAN_MAKING)

    @sign
    def generation(self) -> bool:
        """It says that pictures are generated."""
        if self._any(GENERATION, HAN_GENERATION):
            return True
        heads = not self.signs.isdisjoint(GENERATION_HEADS)
        return heads and PHRASES_GENERATION.search(self.folded) is not None

    @sign
    def artificial(self) -> bool:
        """It speaks of language or picture models in general."""
        if not self.signs.isdisjoint(ARTIFICIAL):
            return True
        short = not self.signs.isdisjoint(ABBREVIATIONS)
        return (short or self.has_han) and ABBREVIATED.search(self.text) is not None

    @sign
    def model(self) -> bool:
        """It has the word "model"."""
        return self._any(MODEL, HAN_MODEL)

    @sign
    def prompt(self) -> bool:
        """It gives, offers or asks for a prompt."""
        if self.has_han and HAN_PROMPT.search(self.folded):
            return True
        if not self.signs.isdisjoint(PROMPT):
            return PROMPT_MEANT.search(self.folded) is not None or self.asks_for_prompt
        by_colon = not self.signs.isdisjoint(PROMPT_BY_COLON)
        return by_colon and self.picture and COLON.search(self.folded) is not None

    @sign
    def asks_for_prompt(self) -> bool:
        """It only asks somebody for their prompt."""
        if self.signs.isdisjoint(PROMPT) or self.length > 2 * MOST_WORDS_OF_A_REMARK:
            return False
        return PROMPT_ASKED.search(self.folded) is not None

    @sign
    def order(self) -> bool:
        """One of its lines or sentences is an instruction for a picture."""
        if not (self.picture or self.look):
            return False
        if self.has_han and any(HAN_ORDER.match(line) for line in self.folded.splitlines()):
            return True
        if self.signs.isdisjoint(ORDER):
            weak = not self.signs.isdisjoint(WEAK_ORDER)
            return weak and self.looks > 1 and self._has_order_line()
        return self._has_order_line()

    def _has_order_line(self) -> bool:
        return ORDER_LINE.search(self.folded) is not None

    @sign
    def looks(self) -> int:
        """How many different words for pictures and their looks it has."""
        count = sum(word in PICTURE or word in LOOK for word in self.signs)
        if not self.has_han:
            return count
        return count + sum(len(set(one.findall(self.folded))) for one in (HAN_PICTURE, HAN_LOOK))

    @sign
    def description(self) -> bool:
        """It says little but what a picture looks like."""
        if self.looks < FEWEST_LOOKS:
            return False
        return self.looks >= MANY_LOOKS or self.looks * WORDS_PER_LOOK >= self.length

    @sign
    def template(self) -> bool:
        """It has blanks to fill in, or settings as JSON, for a picture."""
        if not (self.picture or self.look):
            return False
        if JSON_START.search(self.folded):
            return True
        return not self.is_remark and BLANK.search(self.folded) is not None

    @sign
    def turned_into(self) -> bool:
        """Something was turned into a kind of picture."""
        return self.picture and self.making and INTO.search(self.folded) is not None

    @sign
    def text_use(self) -> bool:
        """It speaks of what language models do with text."""
        return self._any(TEXT_USE, HAN_TEXT_USE)

    @sign
    def looking(self) -> bool:
        """It speaks of reading a picture that exists."""
        return self._any(LOOKING, HAN_LOOKING)

    @sign
    def wonder(self) -> bool:
        """It is amazed."""
        return self._any(VERDICT_WONDER, WONDER) or self._has(EMOJI_WONDER)

    @sign
    def verdict(self) -> bool:
        """It has a word of praise or complaint."""
        return self.wonder or self._any(PRAISE, HAN_PRAISE) or self._any(COMPLAINT, HAN_COMPLAINT)

    def _any(self, of: Set[str], of_han: re.Pattern[str]) -> bool:
        if not self.signs.isdisjoint(of):
            return True
        return self.has_han and of_han.search(self.folded) is not None

    def _has(self, emoji: re.Pattern[str]) -> bool:
        return not self.text.isascii() and emoji.search(self.text) is not None


FEWEST_WORDS = 4
FEWEST_WORDS_WITHOUT_PICTURE = 8
FEWEST_WORDS_OF_A_DESCRIPTION = 12


def is_order(said: Reading) -> bool:
    """Whether a text begins as an instruction, for whatever."""
    return begins_as_order(said.folded)


def begins_as_order(folded: str) -> bool:
    """Whether a folded text begins as an instruction; in Japanese, whether its first line ends so.

    Example:
        >>> begins_as_order("please turn this into a stamp"), begins_as_order("turn left")
        (True, False)
        >>> begins_as_order("i turned this into a stamp")
        False
    """
    return bool(ORDER_START.match(folded) or HAN_ORDER.match(folded))


def is_order_for_picture(said: Reading) -> bool:
    """Whether a text begins as an instruction and speaks of pictures or looks."""
    return (said.picture or said.look) and is_order(said)


def instructs(said: Reading, pictures: int) -> bool:
    """Whether an instruction, as the whole of a post, is one for a picture."""
    fewest = FEWEST_WORDS if pictures else FEWEST_WORDS_WITHOUT_PICTURE
    return (said.picture or said.look) and said.length >= fewest and not said.asks_for_prompt


def only_describes(said: Reading, pictures: int) -> bool:
    """Whether a text does nothing but describe a picture to be made."""
    described = said.description and said.length >= FEWEST_WORDS_OF_A_DESCRIPTION
    template = said.template and said.length >= FEWEST_WORDS_WITHOUT_PICTURE
    return pictures > 0 and (described or template) and is_impersonal(said)


def is_impersonal(said: Reading) -> bool:
    """Whether a text speaks neither of people nor of the target and its maker."""
    return said.words.isdisjoint(FIRST_PERSON) and not (said.target or said.developer)


HAN = r"提示词|提示詞|提示语|提示語|咒语|咒語|描述词|プロンプト|呪文"
LABEL_WORD = rf"(?:{START}(?:prompts?|promts?)(?![a-z])|{HAN})"
# At the beginning of a line other words serve as well: "Consigne :", "指令："
LABEL_AT_START = rf"(?:{START}{one_of(PROMPT_BY_COLON)}{END}|指令|指示文?|プロンプト文)"
SEPARATOR = r"(?:(?P<colon>[:：])|\s?(?:=>|->|→|➡\ufe0f?|=)|\s[—–|-](?=\s))"
LABEL = re.compile(
    rf"(?P<word>{LABEL_WORD})(?P<tail>[^\n:：.!?。！？=→➡|]{{0,40}}?){SEPARATOR}"
    rf"|(?P<other>{LABEL_AT_START})\s?(?:\d{{1,2}}\s?)?[:：]"
)
# A line that holds nothing else.
HEADING = re.compile(
    r"(?m)^[^\w\n]{0,8}(?:(?:the|my|full|image|here|s|is|are|new|your|free|master|base|exact|chatgpt"
    r"|gpt|4o|el|le|der|mein|meu|o|il|mi|mon|\d{1,2})[^\w\n]{1,3}){0,5}"
    rf"{LABEL_WORD}"
    r"(?:[^\w\n]{1,3}(?:share|sharing|used|below|here|i|for|this|these|image|one|it|\d{1,2}|usado|abajo"
    r"|aquí|ci|dessous|unten|hier|abaixo|aqui|qui|sotto|以下|如下|分享|はこちら|↓)){0,5}"
    r"(?:如下|分享|はこちら|以下|は以下)?[^\w\n:：{\[(\"“「『`]{0,12}$"
)
PLAIN_TAIL = re.compile(
    r"(?:\W{0,2}(?:i|used|was|is|here|below|for|this|one|it|image|again|usado|utilizado|utilisé|war|era"
    r"|foi|usei|usé|\d{1,2}|：|如下|はこちら|は))*\W{0,3}"
)
# Of another kind, or the key of a JSON object.
NOT_A_LABEL = re.compile(r"(?:(?:negative|negativer?|反向)\W{0,2}|[\"'])$")
NOT_A_TAIL = re.compile(r"\s*(?:engineer|inject|hack|librar|guide|tips?\b|book)|\s*//")
MOST_LABELS = 64
LONGEST_LEAD = 40
MOST_WORDS_OF_A_LEAD = 4
LEAD_WORD = re.compile(rf"{LETTER}+|[\u3040-\u9fff]{{1,4}}")
HERE = r"below|👇|⬇|↓|🔽|abajo|ci-dessous|unten|abaixo|sotto|下方|下面|下に|以下"
MARKERS_ELSEWHERE = (
    r"(?:in|en|im|nos|nei|dans)\s(?:(?:the|den|der|los|les|first|next|my)\s){0,3}"
    r"(?:comment|repl|thread|posts?(?!\w|-|\soffice)|tweet|alt\b|kommentar|antwort|coment|respuest"
    r"|répons|respost|commenti|rispost|hilo|fil\b)|🧵|(?:next|first|following)\s(?:post|tweet|comment|reply)"
    r"|\balt\b|评论|評論|留言|回复|回覆|リプ|返信|コメント|ツリー|ALT"
)
POINTER = re.compile(
    rf"{LABEL_WORD}[^\n]{{0,30}}?(?:{HERE}|{MARKERS_ELSEWHERE})"
    rf"|(?:{MARKERS_ELSEWHERE}|see comments?|{HERE})[^\n]{{0,24}}?{LABEL_WORD}"
)
IN_DESCRIPTION = re.compile(
    rf"{LABEL_WORD}[^\n]{{0,24}}?(?<![a-z])alt(?![a-z])|(?<![a-z])alt(?![a-z])[^\n]{{0,16}}?{LABEL_WORD}"
)


# What a label is followed by when it only points; see `only_points`.
POINTING_WORD = words(
    en="""in the my see check is are first next comment comments reply replies thread post tweet alt
    alts text description descriptions below here down on for and of this it at bottom image
    images""",
    es="en los el comentarios abajo respuesta respuestas hilo",
    fr="dans les commentaires ci dessous",
    de="im in den kommentaren unten",
    pt="nos comentários abaixo",
    it="nei commenti sotto",
)


class Label(NamedTuple):
    """A place that announces a prompt."""

    start: int
    inside: int


def labels(folded: str) -> list[Label]:
    """The labels in a text."""
    return sorted({*_with_separator(folded), *_headings(folded)})


def _with_separator(folded: str) -> Iterator[Label]:
    first = True
    for match in islice(LABEL.finditer(folded), MOST_LABELS):
        # Looked for nearby only: a text of one line with many labels stays cheap.
        near = max(0, match.start() - LONGEST_LEAD - 2)
        line = max(near, folded.rfind("\n", near, match.start()) + 1)
        lead = folded[line : match.start()]
        if NOT_A_LABEL.search(lead[-12:]) or NOT_A_TAIL.match(match["tail"] or ""):
            continue
        if _begins_line(lead):
            yield Label(line, match.end())
        elif first and match["colon"] and PLAIN_TAIL.fullmatch(match["tail"]):
            yield Label(match.start(), match.end())
        else:
            continue
        first = False


def _begins_line(lead: str) -> bool:
    return len(lead) <= LONGEST_LEAD and len(LEAD_WORD.findall(lead)) <= MOST_WORDS_OF_A_LEAD


def _headings(folded: str) -> Iterator[Label]:
    found = islice(HEADING.finditer(folded), MOST_LABELS)
    return (Label(match.start(), match.end()) for match in found)


def points_elsewhere(folded: str) -> bool:
    """Whether a text says that the prompt stands below, in a reply, or in a description.

    Example:
        >>> points_elsewhere("look at this! prompt in the comments"), points_elsewhere("a prompt")
        (True, False)
    """
    return POINTER.search(folded) is not None


def only_points(folded: str) -> bool:
    """Whether what follows a label is no prompt, but says where the prompt is.

    Example:
        >>> only_points("in the comments 👇"), only_points("a city below the clouds")
        (True, False)
    """
    if HAN_OR_KANA.search(folded):
        return len(folded) <= LONGEST_LEAD // 2 and points_elsewhere("prompt " + folded)
    return POINTING_WORD.issuperset(words_of(folded))


def points_to_description(folded: str) -> bool:
    """Whether a text says that the prompt stands in a picture's description.

    Example:
        >>> points_to_description("prompt in alt")
        True
    """
    return IN_DESCRIPTION.search(folded) is not None
